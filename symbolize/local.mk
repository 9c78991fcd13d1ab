# sources of symbolize/
