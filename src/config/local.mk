# sources of src/config/
