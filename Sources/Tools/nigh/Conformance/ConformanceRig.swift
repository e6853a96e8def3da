import Arguments
import NighLoop
import NighCore
import NighTestKit
import SessionArguments

/// Makes rigs for the conformance suite from transport specs.
struct ConformanceRig: Sendable {
    /// What the suite has to know about a transport and cannot find out.
    struct Settings: Sendable {
        var patience: Duration
        var quietTime: Duration
        var bulk: Int
        var endsAtOnce: Int
        var pipesAtOnce: Int
        var refused: TransportAddress?
        var silent: TransportAddress?
    }

    let specs: [String]
    let settings: Settings
    let plugins: PluginChoice

    static let options = OptionGroup(
        "What the transport is like",
        Option(
            "patience", .duration(in: .milliseconds(10) ... .seconds(3_600)), default: .seconds(10),
            "for how long an outcome is waited for"),
        Option(
            "quiet", .duration(in: .milliseconds(1) ... .seconds(3_600)), default: .milliseconds(100),
            "for how long nothing must happen before it counts as nothing"),
        Option(
            "bulk", .size(in: 1_024...1 << 30), default: 32 << 20,
            "how much is written where it has to be a lot"),
        Option(
            "ends", .integer(in: 2...1_000), default: 20,
            "how many of it there can be at once on one wire: 2 for a cable; checks that need more are skipped"
        ),
        Option(
            "pipes", .integer(in: 1...1_000), default: 20,
            "how many pipes there can be at once between two of it; checks that need more are skipped"),
        Option("refused", .transportAddress, "where nobody listens; found out without it"),
        Option(
            "silent", .transportAddress,
            "where nobody answers; the checks that need it are skipped without it")
    ) {
        Settings(
            patience: $0, quietTime: $1, bulk: $2, endsAtOnce: $3, pipesAtOnce: $4, refused: $5,
            silent: $6)
    }

    /// How long a transport may take to listen.
    private static let listening = Moment.Span.seconds(20)

    /// Returns a function that makes a rig for each check. Throws if a spec is wrong, or if nothing listens.
    func maker() async throws -> @Sendable () throws -> TransportRig {
        let subject = "SPEC"
        var parsed: [TransportSpec] = []
        for spec in specs {
            do throws(NighError) {
                let list = try TransportSpec.list(parsing: spec)
                guard list.count == 1 else { throw NighError(.configuring, .invalid("spec \"\(spec)\"")) }
                parsed += list
            } catch {
                throw Misuse("\(subject): \(error)")
            }
        }
        guard Set(parsed.map(\.scheme)).count == 1 else {
            throw Misuse("the SPECs must be of one transport")
        }
        let registry = try plugins.registry(with: parsed.map(\.scheme), for: subject)
        do throws(NighError) {
            for spec in parsed { _ = try registry.make(spec) }
        } catch {
            throw Misuse("\(subject): \(error)")
        }
        let refused: TransportAddress
        if let given = settings.refused {
            refused = given
        } else {
            refused = try await abandonedAddress(registry.make(parsed[0]))
        }
        let name = specs.joined(separator: " ")
        let settings = settings
        return { [parsed] in
            var rig = TransportRig(
                name, refusedAddress: refused, silentAddress: settings.silent,
                makeLoop: { UVEventLoop() }, stopLoop: { ($0 as? UVEventLoop)?.shutdown() },
                makeEnd: { Self.make(parsed[$0 % parsed.count], of: registry) })
            rig.service = Self.service()
            rig.patience = settings.patience
            rig.quietTime = settings.quietTime
            rig.bulkByteCount = settings.bulk
            rig.endsAtOnce = settings.endsAtOnce
            rig.pipesAtOnce = settings.pipesAtOnce
            return rig
        }
    }

    private static func make(_ spec: TransportSpec, of registry: TransportRegistry) -> any Transport {
        do throws(NighError) {
            return try registry.make(spec)
        } catch {
            // Making it succeeded when the command began.
            fatalError("\(error)")
        }
    }

    /// Returns the name of a service that nobody else offers.
    private static func service() -> ServiceName {
        ServiceName("check-\(String(UInt32.random(in: .min ... .max), radix: 36))") ?? "conformance"
    }

    /// Returns an address where a transport has listened, and where nothing listens any more.
    private func abandonedAddress(_ transport: any Transport) async throws -> TransportAddress {
        let trial = try TransportTrial(of: transport)
        trial.advertise(
            Advertisement(
                service: Self.service(), peer: Identity.ephemeral().peerID,
                name: DisplayName(fitting: "nigh conformance")))
        let address = await trial.firstListeningAddress(within: Self.listening)
        let condition = await trial.condition(within: .zero)
        await trial.end()
        guard let address else {
            if case .down(let error) = condition { throw TransportsUnavailable(errors: [error]) }
            throw NighError(
                .advertising, .timedOut, transport: transport.scheme,
                advice: "name an address where nobody listens with --refused")
        }
        return address
    }
}
