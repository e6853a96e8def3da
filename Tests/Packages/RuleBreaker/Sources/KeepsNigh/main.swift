import NighLoop

// A program that has Nigh built in and does not export it to plugins.
do {
    _ = try LoadedPlugin(path: CommandLine.arguments[1])
    print("loaded")
} catch {
    print(error)
}
