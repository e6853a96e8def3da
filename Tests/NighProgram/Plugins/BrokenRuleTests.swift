import ChildPrograms
import Glibc
import NighCore
import NighTestKit
import Testing

/// Tests plugins that break the transport contract on purpose, one rule at a time, in a program that checks the
/// contract.
@Suite("A plugin that breaks its contract", .callsPrograms) struct BrokenRuleTests {
    /// The rules that a ping gives an opportunity to break. TransportChecksTests breaks the others.
    static let provoked: [ContractRule] = [
        .eventsOnTheLoop, .toldInItsOwnName, .addressesCarryTheScheme, .errorsCarryTheScheme, .dialEndsOnce,
        .dialIsKnown, .routeOfTheService, .routeFoundOnce, .routeFoundFirst, .qualityInRange, .pipeOpenedOnce,
        .pipeClosedIsLast, .pipeEndsOnce, .nothingAfterTheEnd, .noEmptySlices, .writeTakesAll,
        .pipeDrainsOnce, .writableWhenTold, .countsWhatItTells, .countsWhatItTakes,
    ]

    private let user = NighUser()

    private func ping(_ rule: ContractRule?, _ options: String...) throws -> NighCall {
        let honest = try UnixPlugin()
        let host = try honest.host()
        let breaker = try UnixPlugin.ruleBreakers() + "/libRuleBreaker.so"
        let breaks = rule.map { ",breaks=\($0.rawValue)" } ?? ""
        let call = try user.run(
            [
                "ping", "Puma", "-c", "3", "-i", "10ms", "--identity", "ephemeral", "--plugin", breaker, "-t",
                honest.spec + breaks,
            ] + options)
        host.send(SIGINT)
        #expect(try host.end().status == 0)
        return call
    }

    @Test("is cut off, and the rule is named", arguments: provoked)
    func named(_ rule: ContractRule) throws {
        let call = try ping(rule, "--check-transports")
        #expect(call.status != 0)
        let words = call.errors.filter { $0.contains("the transport broke the rule \"") }
        #expect(!words.isEmpty && words.allSatisfy { $0.contains("\"\(rule.rawValue)\"") }, "\(call.errors)")
        #expect(words.contains { $0.contains("bug in the transport \"unix\", not in the network") })
    }

    @Test(
        "is refused at the start if its capabilities are impossible",
        arguments: [ContractRule.capabilitiesPossible, .schemeWellFormed])
    func fromTheStart(_ rule: ContractRule) throws {
        let call = try ping(rule, "--check-transports")
        #expect(call.status == 3)
        #expect(call.errors.contains { $0.contains("broke the rule \"\(rule.rawValue)\"") }, "\(call.errors)")
    }

    @Test("after the session's end is still named, although everything succeeded")
    func afterTheEnd() throws {
        let call = try ping(.quietAfterShutdown, "--check-transports")
        #expect(call.status == 0)
        #expect(
            call.errors.contains { $0.contains("broke the rule \"quiet-after-shutdown\"") }, "\(call.errors)")
    }

    @Test("is checked by default in a debug build")
    func debugBuild() throws {
        let call = try ping(.noEmptySlices)
        #expect(call.errors.contains { $0.contains("broke the rule \"no-empty-slices\"") }, "\(call.errors)")
    }

    @Test("causes no report if it keeps every rule")
    func honest() throws {
        let call = try ping(nil, "--check-transports")
        #expect(call.status == 0 && call.errors.isEmpty, "\(call.errors)")
    }
}
