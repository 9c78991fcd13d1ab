/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cloud-init wrote down at boot comes first. Without it the firmware of the virtual machine
 * says what it is, compared whole: the vendor that systemd takes for Amazon's (src/basic/virt.c),
 * the product and the asset tag that cloud-init takes for Google's and Azure's (tools/ds-identify).
 *
 * Amazon's older machines, on Xen, have another vendor. They would be known only by a UUID that
 * begins with ec2, which Amazon's documentation (identify_ec2_instances) calls inaccurate, since
 * other machines may have such a one, too. A wrong provider is worse than none.
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/cloud.h"
#include "util/cleanup.h"

#define CLOUD_INIT "/run/cloud-init/cloud-id"
#define INSTANCE   "/var/lib/cloud/data/instance-id"
#define FIRMWARE   "/sys/class/dmi/id/"

const char *cloud_read_line(const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\r\n")] = '\0';
	return buf;
}

/* The provider with that id of cloud-init, which has others for regions of their own. */
static const char *provider_of(const char *id)
{
	static const struct {
		const char *cloud_init, *convention;
	} names[] = {
		{"aws", "aws"},
		{"aws-china", "aws"},
		{"aws-gov", "aws"},
		{"gce", "gcp"},
		{"azure", "azure"},
		{"azure-china", "azure"},
		{"oracle", "oracle_cloud"},
		{"aliyun", "alibaba_cloud"},
		{"ibmcloud", "ibm_cloud"},
		{"hetzner", "hetzner"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(id, names[i].cloud_init) == 0)
			return names[i].convention;
	}
	return NULL;
}

static const char *provider_of_firmware(void)
{
	static const struct {
		const char *file, *text, *convention;
	} marks[] = {
		{FIRMWARE "sys_vendor", "Amazon EC2", "aws"},
		{FIRMWARE "product_name", "Google Compute Engine", "gcp"},
		{FIRMWARE "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77", "azure"},
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		if (strcmp(cloud_read_line(marks[i].file, text, sizeof(text)), marks[i].text) == 0)
			return marks[i].convention;
	}
	return NULL;
}

const char *cloud_provider(void)
{
	char id[64];

	return *cloud_read_line(CLOUD_INIT, id, sizeof(id)) ? provider_of(id)
							    : provider_of_firmware();
}

/* "i-" and 8 or 17 hexadecimal digits: on Nitro that is the tag of the board, says the same page.
 */
static bool is_instance_of_aws(const char *id)
{
	size_t n = strlen(id);

	return (n == 2 + 8 || n == 2 + 17) && strncmp(id, "i-", 2) == 0 &&
	       strspn(id + 2, "0123456789abcdef") == n - 2;
}

/* That of a virtual machine in Azure is its id only with UEFI: without, its bytes are in another
 * order. Kernels before 4.15 have capital letters. */
static const char *read_azure(char *buf, size_t size)
{
	if (access("/sys/firmware/efi", F_OK) < 0)
		return strcpy(buf, "");
	(void)cloud_read_line(FIRMWARE "product_uuid", buf, size);
	for (char *c = buf; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return buf;
}

/* Google's has no number of the instance. */
static const char *id_of_firmware(const char *provider, char *buf, size_t size)
{
	if (strcmp(provider, "azure") == 0)
		return read_azure(buf, size);
	if (strcmp(provider, "aws") == 0 &&
	    is_instance_of_aws(cloud_read_line(FIRMWARE "board_asset_tag", buf, size)))
		return buf;
	buf[0] = '\0';
	return buf;
}

const char *cloud_host_id(char *buf, size_t size)
{
	const char *provider = cloud_provider();

	buf[0] = '\0';
	if (!provider || *cloud_read_line(INSTANCE, buf, size))
		return buf;
	return id_of_firmware(provider, buf, size);
}
