# sources of src/export/
