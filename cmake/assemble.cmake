# Assembles PTX and refuses spills, and wgmma that the assembler would run one after the other (its notes C75xx).
# Lines of the source stay in the PTX; with them a cubin would hold that text twice more.
#   cmake -DPTXAS=... -DARCH=sm_100a -DPTX=... -DCUBIN=... -DLOG=... -P assemble.cmake
execute_process(COMMAND ${PTXAS} -arch=${ARCH} -v --warn-on-spills --suppress-debug-info ${PTX} -o ${CUBIN}
                OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
file(WRITE ${LOG} "${output}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "ptxas refused ${PTX}:\n${output}")
endif()
if(output MATCHES "C75[0-9][0-9]")
  file(REMOVE ${CUBIN})
  message(FATAL_ERROR "ptxas serialises a kernel in ${PTX}:\n${output}")
endif()
if(output MATCHES "[1-9][0-9]* bytes spill" OR output MATCHES "[1-9][0-9]* bytes stack frame")
  file(REMOVE ${CUBIN})
  message(FATAL_ERROR "registers of a kernel in ${PTX} spill to local memory:\n${output}")
endif()
