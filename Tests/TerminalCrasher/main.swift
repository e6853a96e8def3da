// The program that the tests of `Terminal` end in many ways. It takes over its terminal and then does what a key
// selects. With "launch" it is the small shell that starts the program in the foreground of a terminal, and reports on
// its output what happens to the program.
import Glibc
import NighCore
import Terminal

var arguments = CommandLine.arguments.dropFirst()
if arguments.first == "launch" {
    arguments.removeFirst()
    exit(Launcher(terminal: arguments.removeFirst(), arguments: Array(arguments)).run())
}
Victim(arguments.first ?? "").run()
