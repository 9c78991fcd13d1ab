/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * PHP 7.4 to 8.5 (builds without threads, "NTS"), for interp.h. A frame is proven if its function
 * is of a known kind, and its position is an instruction of that function.
 *
 * PHP runs in one thread, so every thread gets that thread's frames. Functions: "Class::method",
 * "strlen", "{main}", "require" for the code of a file. Functions written in C, and generators that
 * wait for others, are not evaluated: their address is 0.
 *
 * Its files: libphp*.so of a web server; php, php8.2, php-fpm8.2, php-cgi ...
 */
#include "runtimes/interp.h"

extern const struct interp_type php_type;
