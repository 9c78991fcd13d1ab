/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The runtimes whose frames perfwalk reads in the memory of a process: a row each, from which all
 * that treats them one by one is made. A new one is a row here, and its code in runtimes/.
 *
 * ROW(KIND, type, fields of struct runtime_file). KIND: as in enum profile_runtime. type: its code,
 * TYPE_stepper (runtimes/stepper-internal.h) of runtimes whose frames are on the native stack,
 * TYPE_type (runtimes/interp-internal.h) of interpreters that keep a chain of them. In names of
 * files: # one or more digits, % maybe digits and dots, @ maybe letters (kinds of builds: m, d, t),
 * * anything at the end.
 */

/* Java may have loaded an interpreter's library, so it has the highest rank. */
#define RUNTIMES_ON_STACK(ROW)                                                                     \
	ROW(JVM, hotspot, .name = "Java", .use = RUNTIME_STEPS, .library_rank = 3,                 \
	    .libraries = {"libjvm.so"}, .symbols = {"gHotSpotVMStructs", "gHotSpotVMTypes"})       \
	ROW(V8JS, v8, .name = "Node.js", .use = RUNTIME_STEPS, .library_rank = 2,                  \
	    .libraries = {"libnode.so.*"}, .programs = {"node", "nodejs"},                         \
	    .symbols = {"_ZN2v88internal7Version6major_E", "_ZN2v88internal7Version6minor_E"})

/* Python's trampolines are on the native stack. It has the section since 3.13. */
#define RUNTIMES_WITH_CHAIN(ROW)                                                                   \
	ROW(CPYTHON, cpython, .name = "Python", .use = RUNTIME_ANY, .library_rank = 2,             \
	    .libraries = {"libpython3.#@.so*"}, .programs = {"python3.#@"}, .servers = {"uwsgi*"}, \
	    .symbols = {"_PyEval_EvalFrameDefault", "PyCode_Type", "PyUnicode_Type"},              \
	    .section = ".PyRuntime")                                                               \
	ROW(PHP, php, .name = "PHP", .use = RUNTIME_CHAINS, .library_rank = 2,                     \
	    .libraries = {"libphp%.so*"}, .programs = {"php%", "php%-fpm%", "php%-cgi%"},          \
	    .servers = {"apache2", "httpd"},                                                       \
	    .symbols = {"execute_ex", "executor_globals", "get_zend_version"})                     \
	ROW(RUBY, ruby, .name = "Ruby", .use = RUNTIME_CHAINS, .library_rank = 2,                  \
	    .libraries = {"libruby-%.so*", "libruby%.so*"}, .programs = {"ruby%"},                 \
	    .symbols = {"ruby_version", "ruby_vm_at_exit"})

/* For texts: the names in the rows with a chain, and of all rows, those first. A test compares. */
#define RUNTIME_NAMES_WITH_CHAIN "Python, PHP and Ruby"
#define RUNTIME_NAMES		 "Python, PHP, Ruby, Java and Node.js"

#define RUNTIME_ROWS(ROW) RUNTIMES_ON_STACK(ROW) RUNTIMES_WITH_CHAIN(ROW)

#define RUNTIME_KIND_OF_ROW(kind, ...) RUNTIME_KIND_##kind,
enum runtime_kind { RUNTIME_ROWS(RUNTIME_KIND_OF_ROW) RUNTIME_N_KINDS };
