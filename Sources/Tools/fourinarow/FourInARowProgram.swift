/// The `fourinarow` command.
enum FourInARowProgram {
    static func run(_ arguments: [String]) async -> Int32 { 0 }
}
