import Foundation
import Synchronization

/// Lines on standard error, for events that no delegate gets.
package enum Notice {
    private static let said = Mutex<Set<String>>([])

    /// Says a line.
    package static func say(_ line: String, by module: String) {
        FileHandle.standardError.write(Data("\(module): \(line)\n".utf8))
    }

    /// Says that a delegate has no method of this form, once for each of its type's.
    ///
    /// - Parameter consequence: The effect of its absence, as the end of the sentence.
    package static func missing(_ method: String, of delegate: Any, _ consequence: String, by module: String)
    {
        let type = "\(type(of: delegate))"
        guard said.withLock({ $0.insert("\(type).\(method)").inserted }) else { return }
        say("\(type) has no \(method) with exactly the types of \(module), so \(consequence)", by: module)
    }
}
