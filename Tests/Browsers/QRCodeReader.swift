import ChildPrograms

/// Reads QR codes that a terminal shows, with zbar, which has nothing in common with our own encoder.
package enum QRCodeReader {
    /// The colours of a terminal.
    package enum Terminal: String, CaseIterable, Sendable {
        /// Light letters on a dark background.
        case dark
        /// Dark letters on a light background.
        case light
    }

    /// Returns the text of the one QR code in `lines`, which is made of half blocks. Other lines may stand around it.
    ///
    /// - Parameter terminal: where the lines are shown. Its colours are those of all that has no colour itself, and the
    ///   code must be dark on light there, because not all phones read others. If it is nil, both ways are read.
    package static func text(in lines: [String], on terminal: Terminal? = nil) throws -> String {
        let reader = try Child(
            BuiltPackages.root + "/Tests/Browsers/driver/read-qr", terminal.map { [$0.rawValue] } ?? [],
            reads: true)
        reader.type(lines.joined(separator: "\n"))
        reader.closeInput()
        let (status, errors) = try reader.end()
        guard status == 0, let text = reader.lines.first else {
            let picture = lines.joined(separator: "\n")
            throw Child.Failure(description: "\(errors.joined(separator: "\n")) in:\n\(picture)")
        }
        return text
    }
}
