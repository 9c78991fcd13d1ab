/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks of the texts of config values, by type. Each function returns 0, or -EINVAL, and then
 * error (CONFIG_ERROR_MAX bytes) says what was expected; config_urls_check() may return -ENOMEM.
 */

int config_path_check(const char *text, char *error);
int config_word_check(const char *text, char *error);
int config_url_check(const char *text, char *error);
/* A URL that we use unchanged, so it may have a query. */
int config_exact_url_check(const char *text, char *error);
int config_urls_check(const char *text, char *error);
int config_host_check(const char *text, char *error);
int config_proxy_check(const char *text, char *error);
int config_listen_check(const char *text, char *error);

/* Lists of [filter]. */
int config_globs_check(const char *text, char *error);
int config_containers_check(const char *text, char *error);
int config_cgroups_check(const char *text, char *error);
int config_cpus_check(const char *text, char *error);
