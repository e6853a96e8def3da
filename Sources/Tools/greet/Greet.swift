import Arguments
import Glibc
import Nigh
import NighCore
import ProgramLife
import Synchronization

/// The `greet` command.
enum Greet {
    /// How long two sessions in one program may take to find and greet each other.
    private static let patience = Moment.Span.seconds(20)

    static func run(_ arguments: [String]) async -> Int32 {
        let end = ProgramEnd()
        let greetings = Greetings(end)
        let output = LineOutput(whenBroken: { end.come(0) })
        let greeters: [Greeter]
        do {
            let options: Options
            switch try Options.program.parse(arguments) {
            case .text(let text):
                LineOutput.write(text, to: STDOUT_FILENO)
                return 0
            case .action(let asked): options = asked
            }
            greeters =
                options.stays
                ? [try one(options, output)] : try two(options, output, whenGreeted: { greetings.add() })
            Interrupts.onFirst { end.come(0) }
            for greeter in greeters { greeter.start() }
            for address in options.addresses { greeters[0].call(address) }
            if !options.stays {
                let loop = greeters[0].loop
                loop.execute { loop.schedule(at: loop.now + patience) { end.come(1) } }
            }
        } catch let misuse as Misuse {
            LineOutput.complain("\(misuse)", by: "greet")
            return Misuse.status
        } catch {
            LineOutput.complain("\(error)", by: "greet")
            return 1
        }
        let status = await end.status()
        if status != 0 {
            LineOutput.complain("the two have not met in \(patience)", by: "greet")
            for greeter in greeters { await greeter.explain() }
        }
        await withTaskGroup { group in
            for greeter in greeters { group.addTask { await greeter.leave() } }
        }
        return status
    }

    /// The one that stays until it is told to leave.
    private static func one(_ options: Options, _ output: LineOutput) throws -> Greeter {
        let transports = try options.makeTransports()
        let identity = try options.identity?.load() ?? .ephemeral()
        return Greeter(
            try options.name ?? .ofThisUser(), role: .peer, service: options.service, identity: identity,
            transports: transports, output: output, recorder: try options.record?.begin())
    }

    /// One that is found and one that finds it.
    private static func two(
        _ options: Options, _ output: LineOutput, whenGreeted: @escaping @Sendable () -> Void
    ) throws -> [Greeter] {
        try [("Puma", SessionRole.server), ("Lynx", .client)].map { name, role in
            Greeter(
                DisplayName(fitting: name), role: role, service: options.service, identity: .ephemeral(),
                transports: try options.makeTransports(), output: output, whenGreeted: whenGreeted)
        }
    }
}

/// Whether both have greeted and were greeted, which is when the program ends.
private final class Greetings: Sendable {
    private let count = Atomic<Int>(0)
    private let end: ProgramEnd

    init(_ end: ProgramEnd) { self.end = end }

    func add() {
        if count.add(1, ordering: .relaxed).newValue == 2 { end.come(0) }
    }
}
