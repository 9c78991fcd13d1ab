# sources of src/sample/
