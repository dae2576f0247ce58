# Rewrites the .file directives of PTX so that they do not depend on the machine: paths of this project become relative
# to its root, the compiler's own headers become cuda/NAME.
#   cmake -DINPUT=... -DOUTPUT=... -DROOT=... -P strip_paths.cmake
file(READ ${INPUT} text)
string(REPLACE "\"${ROOT}/" "\"" text "${text}")
string(REGEX REPLACE "(\\.file[\t ]+[0-9]+ \")/[^\"]*/include/" "\\1cuda/" text "${text}")
foreach(edge begin end)  # a comment around each instruction: a tenth of the text
  string(REPLACE "\t// ${edge} inline asm\n" "" text "${text}")
endforeach()
string(REPLACE "$L__info_string" "$i" text "${text}")  # names of inlined functions: a short label in each .loc
file(WRITE ${OUTPUT} "${text}")
