import Glibc
import NighCore

/// A file could not be read, written or transferred: one sentence for this side, and the fault for the other side.
package struct FileFailure: Error, CustomStringConvertible, Sendable {
    package let description: String
    /// The reason that goes to the other side.
    package let fault: FileFault
    /// Whether too many files are open, in this process or in all. It may succeed once some of them are closed.
    package let lacksDescriptors: Bool

    package init(
        _ description: String, _ reason: FileFault.Reason = .inaccessible, other explanation: String? = nil,
        lacksDescriptors: Bool = false
    ) {
        self.description = description
        self.lacksDescriptors = lacksDescriptors
        fault = FileFault(reason, explanation ?? "the file cannot be read or written there")
    }

    /// Returns the failure as the error that a program gets.
    package func error(_ stage: NighError.Stage, peer: String) -> NighError {
        NighError(stage, .file(FileFault(fault.reason, description)), peer: peer)
    }

    /// Creates the failure for an error number of the operating system.
    package static func system(_ what: String, _ number: Int32 = errno) -> FileFailure {
        let reason = String(cString: strerror(number))
        switch number {
        case ENOSPC, EDQUOT:
            return FileFailure("\(what): \(reason)", .noSpace, other: "no space is left")
        case EFBIG:
            return FileFailure(
                "\(what): \(reason)", .noSpace, other: "files may not grow that large there")
        case EMFILE, ENFILE:
            return FileFailure(
                "\(what): \(reason)", other: "too many files are open there", lacksDescriptors: true)
        default: return FileFailure("\(what): \(reason)")
        }
    }
}
