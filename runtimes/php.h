/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * PHP 7.4 to 8.5 (builds without threads, "NTS"), for interp.h. A frame is proven by its function,
 * which is of a kind that there is, and by its place, which is an instruction of it.
 *
 * It runs in one thread: that one's frames are those of any thread that is asked for. Functions:
 * "Class::method", "strlen", "{main}", "require" for the code of a file. Those that are written in
 * C, and generators that wait for others, are not evaluated: their address is 0.
 *
 * Its files: libphp*.so of a web server; php, php8.2, php-fpm8.2, php-cgi ...
 */
#include "runtimes/interp.h"

extern const struct interp_type php_type;
