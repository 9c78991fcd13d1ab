# sources of src/host/
