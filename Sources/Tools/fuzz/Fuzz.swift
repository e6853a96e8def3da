import FuzzTargets
import Glibc

// With libFuzzer (`make fuzz`), this program is what libFuzzer calls with inputs that it makes. Without it, the program
// runs the inputs in the files that it is given: fuzz --target=NAME FILE…

/// The target that the command line names.
private let target: FuzzTarget = {
    let flag = "--target="
    let name = CommandLine.arguments.first { $0.hasPrefix(flag) }?.dropFirst(flag.count)
    guard let target = name.flatMap({ FuzzTarget(rawValue: String($0)) }) else {
        let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: ", ")
        fail("fuzz: give --target=NAME, one of \(names)")
    }
    return target
}()

private func fail(_ message: String) -> Never {
    print(message)
    exit(2)
}

private func run(_ bytes: [UInt8]) {
    do {
        try target.run(bytes)
    } catch {
        fatalError("\(error)")
    }
}

/// Runs an input of libFuzzer. A finding ends the program, after which libFuzzer keeps the input.
@_cdecl("LLVMFuzzerTestOneInput")
public func runInput(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    run(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}

#if !FUZZER
    @main struct Replay {
        static func main() {
            for path in CommandLine.arguments.dropFirst() where !path.hasPrefix("-") {
                guard let file = fopen(path, "r") else { fail("fuzz: \(path) cannot be read") }
                defer { fclose(file) }
                var bytes = [UInt8](repeating: 0, count: 1 << 20)
                bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
                run(bytes)
            }
            _ = target
        }
    }
#endif
