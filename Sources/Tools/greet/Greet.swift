import Arguments
import Nigh
import NighCore

/// The `greet` command.
enum Greet {
    /// How long two sessions in one program may take to find and greet each other.
    private static let patience = Moment.Span.seconds(20)

    static func run(_ arguments: [String]) async -> Int32 {
        let end = End()
        let output = Output(whenBroken: { end.come(0) })
        let greeters: [Greeter]
        do {
            let options: Options
            switch try Options.program.parse(arguments) {
            case .text(let text):
                print(text, terminator: "")
                return 0
            case .action(let asked): options = asked
            }
            greeters =
                options.stays
                ? [try one(options, output)] : try two(options, output, whenGreeted: { end.greeted() })
            Interrupts.onFirst { end.come(0) }
            for greeter in greeters { greeter.start() }
            for address in options.addresses { greeters[0].call(address) }
            if !options.stays { end.comeLater(1, after: patience, on: greeters[0].loop) }
        } catch let misuse as Misuse {
            Output.complain("\(misuse)")
            return Misuse.status
        } catch {
            Output.complain("\(error)")
            return 1
        }
        let status = await end.status()
        if status != 0 {
            Output.complain("the two have not met in \(patience)")
            for greeter in greeters { await greeter.explain() }
        }
        await withTaskGroup { group in
            for greeter in greeters { group.addTask { await greeter.leave() } }
        }
        return status
    }

    /// The one that stays until it is told to leave.
    private static func one(_ options: Options, _ output: Output) throws -> Greeter {
        let transports = try options.makeTransports()
        let identity = try options.identity?.load() ?? .ephemeral()
        return Greeter(
            options.name ?? .ofThisDevice(), role: .peer, service: options.service, identity: identity,
            transports: transports, output: output)
    }

    /// One that is found and one that finds it.
    private static func two(
        _ options: Options, _ output: Output, whenGreeted: @escaping @Sendable () -> Void
    ) throws -> [Greeter] {
        try [("Puma", SessionRole.server), ("Lynx", .client)].map { name, role in
            Greeter(
                DisplayName(fitting: name), role: role, service: options.service, identity: .ephemeral(),
                transports: try options.makeTransports(), output: output, whenGreeted: whenGreeted)
        }
    }
}

/// When the program is to leave, and with which status: whichever reason comes first.
///
/// `@unchecked Sendable`: what changes is guarded by the lock.
private final class End: @unchecked Sendable {
    private let lock = Lock()
    private var decided: Int32?
    private var waiting: CheckedContinuation<Int32, Never>?
    private var greetings = 0

    func status() async -> Int32 {
        await withCheckedContinuation { continuation in
            let status = lock.withLock {
                if decided == nil { waiting = continuation }
                return decided
            }
            if let status { continuation.resume(returning: status) }
        }
    }

    func come(_ status: Int32) {
        let waiting = lock.withLock { () -> CheckedContinuation<Int32, Never>? in
            guard decided == nil else { return nil }
            decided = status
            return self.waiting
        }
        waiting?.resume(returning: status)
    }

    func comeLater(_ status: Int32, after span: Moment.Span, on loop: UVEventLoop) {
        loop.execute { loop.schedule(at: loop.now + span) { self.come(status) } }
    }

    /// One of the two has greeted and was greeted.
    func greeted() {
        let isLast = lock.withLock {
            greetings += 1
            return greetings == 2
        }
        if isLast { come(0) }
    }
}
