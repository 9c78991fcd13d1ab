/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * libcurl, loaded when it is needed. perfwalk is one program in several roles and two of them speak
 * HTTP; linked in, libcurl and the 30 libraries behind it would cost each role 6 MB resident and
 * each start 9 ms (measured on Debian 12).
 */
#include <curl/curl.h>
#include <stddef.h>

/* Each a pointer to the function that its name says, with the prototype of the real header. */
#define CURL_FUNCTIONS(F)                                                                          \
	F(easy_cleanup)                                                                            \
	F(easy_getinfo)                                                                            \
	F(easy_init)                                                                               \
	F(easy_setopt)                                                                             \
	F(easy_strerror)                                                                           \
	F(getdate)                                                                                 \
	F(global_init)                                                                             \
	F(multi_add_handle)                                                                        \
	F(multi_cleanup)                                                                           \
	F(multi_info_read)                                                                         \
	F(multi_init)                                                                              \
	F(multi_remove_handle)                                                                     \
	F(multi_setopt)                                                                            \
	F(multi_socket_action)                                                                     \
	F(slist_append)                                                                            \
	F(slist_free_all)                                                                          \
	F(version_info)

struct curl_api {
#define CURL_MEMBER(name) __typeof__(&curl_##name) name;
	CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
};

/* Loads and initialises the library; it stays loaded. 0; -ENOENT or -EIO with a message in error.
 */
int curl_api_load(struct curl_api *ret, char *error, size_t n_error);
/* Of a handle, for that URL: http and https alone. Where a server sends it on to, https stays
 * https. */
CURLcode curl_api_set_protocols(const struct curl_api *api, CURL *easy, const char *url);
/*
 * Of a handle, where no certificate is configured: the system's authorities. Only where libcurl's
 * own file is not there: one that came from another distribution (make bundle) looks in that one's
 * place.
 */
CURLcode curl_api_set_authorities(const struct curl_api *api, CURL *easy);
