# flashback_kernel_image(TARGET NAME ARCH SOURCE): compiles SOURCE to PTX, assembles that very PTX, and puts both into
# TARGET as the read-only symbols flashback_NAME_{ptx,cubin}[_end], the PTX compressed (device/ptx_text.h). ARCH is as
# nvcc says it: 100a, 90a.
find_program(FLASHBACK_NVCC nvcc PATHS /usr/local/cuda/bin REQUIRED DOC "CUDA compiler, 13.0 or newer")
get_filename_component(FLASHBACK_CUDA_BIN ${FLASHBACK_NVCC} DIRECTORY)

function(flashback_kernel_image target name arch source)
  set(ptx ${CMAKE_CURRENT_BINARY_DIR}/${name}.ptx)
  set(cubin ${CMAKE_CURRENT_BINARY_DIR}/${name}.cubin)
  set(log ${CMAKE_CURRENT_BINARY_DIR}/${name}.ptxas.log)
  # With -lineinfo the PTX names its sources: by their paths from the root.
  add_custom_command(
    OUTPUT ${ptx}
    COMMAND ${FLASHBACK_NVCC} -std=c++20 --expt-relaxed-constexpr -ptx -lineinfo
            -gencode arch=compute_${arch},code=compute_${arch} -I${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/${source}
            -o ${ptx}.raw -MD -MF ${ptx}.d -MT ${ptx}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${ptx}.raw -DOUTPUT=${ptx} -DROOT=${CMAKE_SOURCE_DIR}
            -P ${CMAKE_SOURCE_DIR}/cmake/strip_paths.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/${source} ${CMAKE_SOURCE_DIR}/cmake/strip_paths.cmake
    DEPFILE ${ptx}.d
    COMMENT "PTX of ${name}"
    VERBATIM)
  # Without name and time: the same text gives the same bytes.
  add_custom_command(
    OUTPUT ${ptx}.gz
    COMMAND gzip --best --no-name --keep --force ${ptx}
    DEPENDS ${ptx}
    COMMENT "Compressed PTX of ${name}"
    VERBATIM)
  # A spill or a stack frame in these kernels is a defect: fail.
  add_custom_command(
    OUTPUT ${cubin}
    COMMAND ${CMAKE_COMMAND} -DPTXAS=${FLASHBACK_CUDA_BIN}/ptxas -DARCH=sm_${arch} -DPTX=${ptx} -DCUBIN=${cubin}
            -DLOG=${log} -P ${CMAKE_SOURCE_DIR}/cmake/assemble.cmake
    DEPENDS ${ptx} ${CMAKE_SOURCE_DIR}/cmake/assemble.cmake
    COMMENT "Cubin of ${name}"
    VERBATIM)

  set(assembly ${CMAKE_CURRENT_BINARY_DIR}/${name}.S)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/kernel_image.S.in ${assembly} @ONLY)
  set_source_files_properties(${assembly} PROPERTIES OBJECT_DEPENDS "${ptx}.gz;${cubin}")
  target_sources(${target} PRIVATE ${assembly})
endfunction()
