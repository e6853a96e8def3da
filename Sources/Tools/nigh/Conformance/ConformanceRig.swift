import Arguments
import NighLoop
import NighCore
import NighTestKit
import SessionArguments

/// Makes rigs for the conformance suite from transport specs.
struct ConformanceRig: Sendable {
    /// Facts about a transport that the suite needs and cannot find out.
    struct Settings: Sendable {
        var timeout: Duration
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
        "Properties of the transport",
        Option(
            "wait", .duration(in: .milliseconds(10) ... .seconds(3_600)), default: .seconds(10),
            "the time limit for each outcome"
        ).formerly("patience"),
        Option(
            "settle", .duration(in: .milliseconds(1) ... .seconds(3_600)), default: .milliseconds(100),
            "the time without an event after which nothing is expected any more"),
        Option(
            "bulk", .size(in: 1_024...1 << 30), default: 32 << 20,
            "how many bytes a check writes if it needs many"),
        Option(
            "ends", .integer(in: 2...1_000), default: 20,
            "how many transports there can be at once on one wire: 2 for a cable; checks that need more are skipped"
        ),
        Option(
            "pipes", .integer(in: 1...1_000), default: 20,
            "how many pipes there can be at once between two transports; checks that need more are skipped"),
        Option(
            "refused", .transportAddress,
            "an address where nothing listens; by default the command finds one"),
        Option(
            "silent", .transportAddress,
            "an address where nobody answers; without it the checks that need one are skipped")
    ) {
        Settings(
            timeout: $0, quietTime: $1, bulk: $2, endsAtOnce: $3, pipesAtOnce: $4, refused: $5,
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
                throw UsageError("\(subject): \(error)")
            }
        }
        guard Set(parsed.map(\.scheme)).count == 1 else {
            throw UsageError("all SPECs must name the same transport")
        }
        let registry = try plugins.registry(with: parsed.map(\.scheme), for: subject)
        do throws(NighError) {
            for spec in parsed { _ = try registry.make(spec) }
        } catch {
            throw UsageError("\(subject): \(error)")
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
            rig.timeout = settings.timeout
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
        let runner = try TransportRunner(of: transport)
        runner.advertise(
            Advertisement(
                service: Self.service(), peer: Identity.ephemeral().peerID,
                name: DisplayName(fitting: "nigh conformance")))
        let address = await runner.firstListeningAddress(within: Self.listening)
        let condition = await runner.condition(within: .zero)
        await runner.end()
        guard let address else {
            if case .down(let error) = condition { throw TransportsUnavailable(errors: [error]) }
            throw NighError(
                .advertising, .timedOut, transport: transport.scheme,
                advice: "name an address where nothing listens with --refused")
        }
        return address
    }
}
