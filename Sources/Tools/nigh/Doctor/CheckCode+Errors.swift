import Glibc
import NighCore

/// Which check of `nigh doctor` explains an error. The command adds its code to the errors that it prints.
extension CheckCode {
    /// Returns the code of the check that explains `error`; nil if none does.
    static func code(of error: NighError) -> String? {
        switch (error.stage, error.cause) {
        case (.advertising, .system(EADDRINUSE, _)), (.advertising, .system(EACCES, _)):
            // The check of a transport's port or channel has one of these names.
            ["port", "listening"].lazy.compactMap { code(of: "\(error.transport ?? "").\($0)") }.first
        case (_, .allFailed): error.attempts.lazy.compactMap(code(of:)).first
        // Nobody has answered the invitation, although the peer was reached.
        case (.inviting, .timedOut): nil
        case (.pinging, .timedOut): code(of: "peer.ping")
        case (.browsing, _), (.connecting, _), (.securing, _), (.greeting, _), (.inviting, _), (.resuming, _),
            (.conversing, _), (.pinging, _):
            code(ofCause: error.cause.label)
        default: nil
        }
    }

    /// Returns the code of the check in which a transport reports the cause of `error`.
    static func code(of error: NighError, saidBy transport: any Transport) -> String? {
        transport.diagnose().first { $0.verdict != .pass && $0.finding == "\(error.cause)" }
            .flatMap { code(of: "\(transport.scheme).\($0.id)") }
    }

    /// An error as the command prints it: with the codes under which `nigh help` has more about it.
    static func text(of error: any Error, _ codes: [String]) -> String {
        guard !codes.isEmpty else { return "\(error)" }
        return "\(error) (\(codes.map { "`nigh help \($0)`" }.joined(separator: ", ")))"
    }
}

/// An error that knows which checks of `nigh doctor` explain it.
protocol ExplainedError: Error {
    var checkCodes: [String] { get }
}

extension NighError: ExplainedError {
    var checkCodes: [String] { CheckCode.code(of: self).map { [$0] } ?? [] }
}
