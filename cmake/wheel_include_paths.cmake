# Mends ROS 2 from PyPI's wheels; `make` hands it to CMake as CMAKE_PROJECT_INCLUDE. Not needed on an installed ROS 2.
#
# Some exported targets of the wheels name include folders of the machine that built them (/opt/python/...). CMake
# refuses targets whose include folders do not exist, so such folders are dropped once all packages have been found.
# Nothing is lost: the Python and NumPy headers that they meant are found on this machine by FindPython3.

function(drop_missing_include_folders)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT folders)
      continue()
    endif()
    set(kept "")
    foreach(folder IN LISTS folders)
      if(folder MATCHES "^\\$<" OR EXISTS "${folder}")
        list(APPEND kept "${folder}")
      endif()
    endforeach()
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${kept}")
  endforeach()
endfunction()

cmake_language(DEFER CALL drop_missing_include_folders)
