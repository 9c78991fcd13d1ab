/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/cloud.h"
#include "util/cleanup.h"

const char *cloud_read_line(const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\r\n")] = '\0';
	return buf;
}

const char *cloud_provider(void)
{
	static const struct {
		const char *cloud_init, *convention;
	} names[] = {
		{"aws", "aws"},
		{"gce", "gcp"},
		{"azure", "azure"},
		{"oracle", "oracle_cloud"},
		{"aliyun", "alibaba_cloud"},
		{"ibmcloud", "ibm_cloud"},
		{"hetzner", "hetzner"},
	};
	char id[64];

	(void)cloud_read_line("/run/cloud-init/cloud-id", id, sizeof(id));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(id, names[i].cloud_init) == 0)
			return names[i].convention;
	}
	return NULL;
}

const char *cloud_host_id(char *buf, size_t size)
{
	buf[0] = '\0';
	return cloud_provider() ? cloud_read_line("/var/lib/cloud/data/instance-id", buf, size)
				: buf;
}
