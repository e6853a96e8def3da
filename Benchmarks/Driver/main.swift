import Glibc

exit(Driver.run(CommandLine.arguments))
