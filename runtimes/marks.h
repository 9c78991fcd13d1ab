/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which runtimes an ELF file holds, by the symbols that it exports (util/runtime-files.h), whatever
 * its name is: a program with an interpreter linked into it. Or that it holds one without these: by
 * its sections.
 */
#include "util/runtime-files.h"

/* Reads the file, which is borrowed and untrusted, within bounds. 0: it holds none, or is not
 * sound. Else their uses together, or RUNTIME_HIDDEN alone. */
unsigned int runtime_marks_of(int fd);
