# CUDA programs as their authors build them: linked to the shared runtime, PTX uncompressed, for both architectures. They
# lie in build/tests/cuda. Against the toolkit's own runtime: that ours can take its place is part of the test.
find_library(FLASHBACK_CUDART NAMES libcudart.so.13 PATHS ${FLASHBACK_NVCC}/../../lib ${FLASHBACK_NVCC}/../../lib64
             NO_DEFAULT_PATH REQUIRED)
get_filename_component(cudart_folder ${FLASHBACK_CUDART} DIRECTORY)
set(cuda_programs ${CMAKE_BINARY_DIR}/tests/cuda)
file(MAKE_DIRECTORY ${cuda_programs})

# Options and libraries follow the name and the source.
function(flashback_cuda_program name source)
  add_custom_command(
    OUTPUT ${cuda_programs}/${name}
    COMMAND ${FLASHBACK_NVCC} -std=c++20 -lineinfo -cudart none ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${ARGN}
            -L${cudart_folder} -l:libcudart.so.13 -o ${cuda_programs}/${name}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${CMAKE_CURRENT_SOURCE_DIR}/emulator/cuda/programs/check.h
    COMMENT "CUDA program ${name}"
    VERBATIM)
  set_property(GLOBAL APPEND PROPERTY flashback_cuda_programs ${cuda_programs}/${name})
endfunction()

set(both_architectures -gencode arch=compute_90a,code=compute_90a -gencode arch=compute_100a,code=compute_100a
    --no-compress)
foreach(name cluster dependent_launch vector_add streams device launch_errors print race symbols tensor_map unsupported_instruction fault)
  flashback_cuda_program(${name} emulator/cuda/programs/${name}.cu ${both_architectures})
endforeach()
flashback_cuda_program(unsupported_call emulator/cuda/programs/unsupported_call.cu ${both_architectures} -g)
flashback_cuda_program(vector_add_per_thread emulator/cuda/programs/vector_add.cu ${both_architectures}
                       --default-stream per-thread)
flashback_cuda_program(vector_add_compressed emulator/cuda/programs/vector_add.cu
                       -gencode arch=compute_100a,code=compute_100a)
flashback_cuda_program(module emulator/cuda/programs/module.cu ${both_architectures}
                       -L${CMAKE_BINARY_DIR}/cuda -l:libcuda.so.1 -Xlinker --allow-shlib-undefined)

get_property(built GLOBAL PROPERTY flashback_cuda_programs)
add_custom_target(cuda_programs ALL DEPENDS ${built})
add_dependencies(cuda_programs flashback_cuda_driver)
