function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component library)
set(flags)
set(by_hand_flags)
if(SANITIZE)
  set(by_hand_flags -fsanitize=address,undefined)
  set(flags -DCMAKE_EXE_LINKER_FLAGS=-fsanitize=address,undefined)
endif()
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/tests/package/user -B ${WORK}/build
    -DCMAKE_PREFIX_PATH=${WORK}/prefix -DEXAMPLES=${SOURCE}/examples -DCMAKE_C_COMPILER=${C} -DCMAKE_CXX_COMPILER=${CXX} ${flags})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/backward_c)
run(${WORK}/build/backward_cpp)
file(COPY ${EMULATOR} DESTINATION ${WORK}/build)
run(${WORK}/build/backward_c_static)
run(${WORK}/build/backward_cpp_static)

# A library moves with its prefix, and needs no CMake.
file(RENAME ${WORK}/prefix ${WORK}/moved)
file(GLOB_RECURSE library ${WORK}/moved/*/libflashback.so)
get_filename_component(folder ${library} DIRECTORY)
run(${C} -std=c99 ${SOURCE}/examples/backward.c -I${WORK}/moved/include -L${folder} -lflashback -lm -Wl,-rpath,${folder}
    ${by_hand_flags} -o ${WORK}/by_hand)
run(${WORK}/by_hand)
