// What the terminal's tests take down: a program that takes its terminal over and then does what it is told by a key. With "launch" it is
// the small shell that starts it in the foreground of a terminal, and tells on its output what becomes of it.
import Glibc
import NighCore
import Terminal

var arguments = CommandLine.arguments.dropFirst()
if arguments.first == "launch" {
    arguments.removeFirst()
    exit(Launcher(terminal: arguments.removeFirst(), arguments: Array(arguments)).run())
}
Victim(arguments.first ?? "").run()
