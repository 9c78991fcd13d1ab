# sources of src/render/
