# cmake -DROOT=... -DOUTPUT=... -P commit.cmake: writes OUTPUT, a header with the commit that ROOT is at, so that a
# result can name it. "-dirty" where tracked files differ from it; "unknown" outside of a repository.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${ROOT} describe --always --abbrev=12 --dirty --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define FLASHBACK_COMMIT \"\${commit}\"\n")
