include src/profile/local.mk
include src/sample/local.mk
include src/host/local.mk
include src/broker/local.mk
include src/render/local.mk
include src/export/local.mk
include src/config/local.mk
include src/cmd/local.mk
