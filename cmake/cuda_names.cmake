# Writes assembly that defines every function which CUDA's headers declare, so that a program never fails to link. Each
# is weak: what is provided is defined elsewhere and wins. The others name themselves and answer "not supported"; the
# forms for a thread's own default stream (NAME_ptsz, NAME_ptds) are NAME, because streams differ in nothing here.
#   cmake -DCOMPILER=g++ -DINCLUDE=/usr/local/cuda/include -DHEADERS=cuda.h -DOUTPUT=... -P cuda_names.cmake
set(program "")
foreach(header ${HEADERS})
  string(APPEND program "#include <${header}>\n")
endforeach()
set(names "")
foreach(streams "" "#define CUDA_API_PER_THREAD_DEFAULT_STREAM\n")
  file(WRITE ${OUTPUT}.c "${streams}${program}")
  execute_process(COMMAND ${COMPILER} -E -P -x c -I${INCLUDE} ${OUTPUT}.c OUTPUT_VARIABLE text
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "(cudaError_t|CUresult)[ \n]+cu[A-Za-z0-9_]+[ \n]*\\(" declarations "${text}")
  foreach(declaration ${declarations})
    string(REGEX REPLACE "^[A-Za-z_]+[ \n]+(cu[A-Za-z0-9_]+).*" "\\1" name "${declaration}")
    list(APPEND names ${name})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES names)
list(SORT names)
list(LENGTH names count)
if(count LESS 300)
  message(FATAL_ERROR "${HEADERS} of ${INCLUDE} declare ${count} functions; CUDA 13.0's declare more than 300")
endif()

set(text ".section .note.GNU-stack, \"\", @progbits\n")
foreach(name ${names})
  string(APPEND text ".text\n.weak ${name}\n.type ${name}, @function\n${name}:\n")
  if(name MATCHES "^(.*)_pt[sd][sz]$")
    string(APPEND text "  jmp ${CMAKE_MATCH_1}@PLT\n")
  else()
    string(APPEND text "  lea .L${name}(%rip), %rdi\n  jmp flashback_cuda_not_provided@PLT\n"
                       ".section .rodata\n.L${name}: .string \"${name}\"\n")
  endif()
endforeach()
file(WRITE ${OUTPUT} "${text}")
