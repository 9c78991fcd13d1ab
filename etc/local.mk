# sources of etc/
