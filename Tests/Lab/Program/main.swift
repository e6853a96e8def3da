import Glibc

exit(CommandLineOfLab.run(Array(CommandLine.arguments.dropFirst())))
