# sources of src/cmd/
