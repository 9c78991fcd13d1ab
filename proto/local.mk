# sources of proto/
