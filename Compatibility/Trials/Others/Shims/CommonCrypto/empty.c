// A target of C needs a source file.
