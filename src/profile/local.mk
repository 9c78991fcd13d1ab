# sources of src/profile/
