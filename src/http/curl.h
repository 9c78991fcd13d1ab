/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * libcurl, loaded when needed. perfwalk is one program with several roles, and two of them are HTTP
 * clients. If it were linked, libcurl and the 30 libraries it needs would cost each role 6 MB
 * resident and each start 9 ms (measured on Debian 12).
 */
#include <curl/curl.h>
#include <stddef.h>

/* Pointers to the functions of these names, with the prototypes of the real header. */
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
/* Allows only http and https for a handle and its URL. A redirect from https must stay https. */
CURLcode curl_api_set_protocols(const struct curl_api *api, CURL *easy, const char *url);
/*
 * Sets the system's certificate authorities for a handle without a configured certificate. Needed
 * if libcurl's own file does not exist, because a libcurl of another distribution (make bundle)
 * looks in that distribution's place.
 */
CURLcode curl_api_set_authorities(const struct curl_api *api, CURL *easy);
