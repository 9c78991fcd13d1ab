# sources of src/broker/
