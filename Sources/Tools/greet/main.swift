import Glibc

if CommandLine.arguments.count > 1 {
    let asksForHelp = ["--help", "-h"].contains(CommandLine.arguments[1])
    print("usage: greet\n\nLets two sessions in this process find each other over memory, talk, and leave.")
    exit(asksForHelp ? 0 : 2)
}
await Greeting.run()
