# cmake -DNVCC=... -DARCH=90a -DSOURCE=... -DROOT=... -DOUTPUT=... -P compare.cmake: the PTX of SOURCE with marks and
# without differs in comments only, so that marks cost nothing.
foreach(marks "" -I${ROOT}/tests/kernels/marks/none)
  execute_process(COMMAND ${NVCC} -std=c++20 --expt-relaxed-constexpr -ptx -gencode
                          arch=compute_${ARCH},code=compute_${ARCH} ${marks} -I${ROOT} ${SOURCE} -o ${OUTPUT}
                  COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${OUTPUT} text)
  string(REGEX MATCHALL "//@ [^\n]*" found "${text}")
  list(LENGTH found count)
  list(APPEND counts ${count})
  string(REGEX REPLACE "\t*//[^\n]*\n" "" text "${text}")
  string(SHA256 hash "${text}")
  list(APPEND hashes ${hash})
endforeach()
list(GET counts 0 with)
list(GET counts 1 without)
if(with EQUAL 0 OR NOT without EQUAL 0)
  message(FATAL_ERROR "${SOURCE} has ${with} marks with them and ${without} without; it should have some and none")
endif()
list(REMOVE_DUPLICATES hashes)
list(LENGTH hashes different)
if(NOT different EQUAL 1)
  message(FATAL_ERROR "marks change the PTX of ${SOURCE}: ${OUTPUT} is that without them")
endif()
