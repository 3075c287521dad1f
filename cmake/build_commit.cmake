# Writes OUT, a header that names what is being built: the commit, "+changes" behind it where the tree has uncommitted
# ones, or "unknown" outside git. Run in every build; the file is touched only where it says something else, so that a
# build of an unchanged tree compiles and links nothing.
#   cmake -DSOURCE=folder -DOUT=file -P build_commit.cmake
set(built_from "unknown")
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-toplevel HEAD
                  OUTPUT_VARIABLE found RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  # A tree that was unpacked inside another repository is not of its commits.
  file(REAL_PATH "${SOURCE}" source)
  if(NOT failed AND found MATCHES "^(.*)\n([0-9a-f]+)$" AND CMAKE_MATCH_1 STREQUAL source)
    set(built_from "${CMAKE_MATCH_2}")
    # As scripts/run_tests.py asks: the totals that a full run writes are no change to what is tested.
    execute_process(COMMAND ${GIT} -C ${SOURCE} status --porcelain -- . ":(exclude)docs/results.md"
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND built_from "+changes")
    endif()
  endif()
endif()
set(text "// Written by cmake/build_commit.cmake.\n#define PINNACE_BUILT_FROM \"${built_from}\"\n")
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUT} "${text}")
endif()
