import NighCore
import NighMemory
import SessionArguments

@testable import nigh

extension CommandSession {
    /// A service of a test's own.
    static func service() -> ServiceName { ServiceName("c\(UInt32.random(in: .min ... .max))") ?? "command" }

    /// The session of a command under test, over memory: a server that accepts `purposes`, or a client.
    static func overMemory(
        _ name: String, _ service: ServiceName, _ role: SessionRole? = nil,
        accepting purposes: [InvitationPurpose] = []
    ) throws -> CommandSession {
        let options = SessionOptions(
            transports: "memory", plugins: .none, service: service, name: DisplayName(fitting: name),
            identity: .ephemeral, security: .encrypted, relays: .nobody, isVerbose: false)
        return try CommandSession(
            options, role: role ?? (purposes.isEmpty ? .client : .server), accepting: purposes,
            results: Results(of: "test", OutputOptions(form: .json), onFailure: {}))
    }
}
