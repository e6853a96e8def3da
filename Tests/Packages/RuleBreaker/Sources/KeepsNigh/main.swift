import Nigh

// A program that has Nigh built in and lends it to nobody.
do {
    _ = try LoadedPlugin(path: CommandLine.arguments[1])
    print("loaded")
} catch {
    print(error)
}
