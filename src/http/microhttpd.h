/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * libmicrohttpd, loaded only by the process that serves, as libcurl by the exporter: with its TLS
 * library it would cost every process some megabytes.
 */
#include <stddef.h>

#if __has_include(<microhttpd.h>)
#include <microhttpd.h>

/* Pointers to the functions of these names, with the prototypes of the real header. */
#define MICROHTTPD_FUNCTIONS(F)                                                                    \
	F(add_response_header)                                                                     \
	F(create_response_from_buffer)                                                             \
	F(destroy_response)                                                                        \
	F(get_connection_info)                                                                     \
	F(get_daemon_info)                                                                         \
	F(get_timeout)                                                                             \
	F(lookup_connection_value)                                                                 \
	F(queue_response)                                                                          \
	F(resume_connection)                                                                       \
	F(run)                                                                                     \
	F(start_daemon)                                                                            \
	F(stop_daemon)                                                                             \
	F(suspend_connection)

struct microhttpd_api {
#define MICROHTTPD_MEMBER(name) __typeof__(&MHD_##name) name;
	MICROHTTPD_FUNCTIONS(MICROHTTPD_MEMBER)
#undef MICROHTTPD_MEMBER
};

/* Loads the library; it stays loaded. 0, or -ENOENT with a message in error. */
int microhttpd_api_load(struct microhttpd_api *ret, char *error, size_t n_error);
#endif
