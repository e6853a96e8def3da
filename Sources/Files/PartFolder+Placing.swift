import Glibc

/// Gives whole files and folders their names. Nothing that exists is replaced, unless the user wants that of a single
/// file.
extension PartFolder {
    /// The folder and the path that a file or folder has got.
    struct Final {
        /// The folder that it is in.
        let folder: OpenFolder
        /// Its path in the folder that everything is received into.
        let path: String
    }

    /// Opens the folder for an offered folder. Creates it, and those that it is in, if this transfer did not do so
    /// before.
    func finalFolder(_ names: some Collection<String>) throws(FileFailure) -> Final {
        var folder = Final(folder: destination, path: "")
        var offered = ""
        for name in names {
            let isTop = offered.isEmpty
            offered += isTop ? name : "/\(name)"
            folder = try finalFolder(
                Self.key(of: offered), isTop ? base : SafeFileName(name, mayBeHidden: true),
                from: isTop ? number : 1, in: folder
            )
        }
        return folder
    }

    private func finalFolder(
        _ key: String, _ base: SafeFileName, from first: Int, in outer: Final
    ) throws(FileFailure) -> Final {
        if let name = note.content.folder(key)?.pathComponents.last {
            let path = outer.path(of: name)
            if let folder = try outer.folder.folder(name) { return Final(folder: folder, path: path) }
            // It was to be created when the program was killed, or was removed since.
            if let folder = try outer.folder.newFolder(name) { return Final(folder: folder, path: path) }
        }
        for number in first...SafeFileName.numbers.upperBound {
            let name = base.numbered(number).text
            guard !outer.folder.has(name) else { continue }
            let path = outer.path(of: name)
            try note.append(.folder(key: key, path: path))
            if let folder = try outer.folder.newFolder(name) { return Final(folder: folder, path: path) }
        }
        throw outer.allTaken(base)
    }

    /// Gives an open file its name: the first of its names that is free. It is the open file that gets the name, and
    /// not something else that was put in its place.
    func place(
        _ file: OpenDescriptor, _ key: String, _ names: [String], replacing: Bool
    ) throws(FileFailure) -> Final {
        guard destination.isInPlace else {
            throw FileFailure(
                "\(destination.path) was moved or removed during the transfer; send it again to a folder that stays",
                other: "the folder for it was moved or removed there")
        }
        let outer = try finalFolder(names.dropLast())
        let candidates = candidates(names)
        if let status = file.status, status.st_nlink > 1,
            let name = candidates.first(where: { outer.folder.leads($0, to: file) })
        {
            return Final(folder: outer.folder, path: outer.path(of: name))
        }
        for name in candidates {
            let final = Final(folder: outer.folder, path: outer.path(of: name))
            // The content of an offered folder came with it, and is not there to be replaced.
            if replacing, names.count < 2 {
                guard outer.folder.isReplaceable(name) else { continue }
                try replace(name, in: final, with: file, key)
                return final
            }
            if outer.folder.link(file, as: name) { return final }
            switch errno {
            case EEXIST: continue
            // The file system has no hard links, or `/proc` is not there: checking a name and giving it cannot be one
            // step.
            case EPERM, EOPNOTSUPP, ENOENT:
                guard !outer.folder.has(name) else { continue }
                try move(file, key, to: name, in: final)
                return final
            default: throw .system("creating \(outer.folder.path(of: name))")
            }
        }
        throw outer.allTaken(SafeFileName(names.last ?? "", mayBeHidden: true))
    }

    /// Returns the names that a file can get, in the order in which they are tried.
    func candidates(_ names: [String]) -> some Collection<String> {
        let isTop = names.count < 2
        let base = isTop ? base : SafeFileName(names.last ?? "", mayBeHidden: true)
        return ((isTop ? number : 1)...SafeFileName.numbers.upperBound).lazy.map { base.numbered($0).text }
    }

    /// Replaces the file with that name, in one step.
    private func replace(
        _ name: String, in final: Final, with file: OpenDescriptor, _ key: String
    ) throws(FileFailure) {
        let new = key + Self.newSuffix
        folder.remove(new)
        guard folder.link(file, as: new) else { return try move(file, key, to: name, in: final) }
        try folder.move(new, to: final.folder, as: name)
        guard final.folder.leads(name, to: file) else { throw lost(final.folder.path(of: name)) }
    }

    /// Renames the data, and checks before and after that the name leads to that file.
    func move(_ file: OpenDescriptor, _ key: String, to name: String, in final: Final) throws(FileFailure) {
        guard folder.leads(key, to: file), let status = file.status else { throw lost(folder.path(of: key)) }
        try note.append(.moving(key: key, file: UInt64(status.st_ino), path: final.path))
        try note.sync()
        try folder.move(key, to: final.folder, as: name)
        guard final.folder.leads(name, to: file) else { throw lost(final.folder.path(of: name)) }
    }

    private func lost(_ path: String) -> FileFailure {
        FileFailure(
            "\(path) was removed or replaced during the transfer; send it again",
            other: "it was removed or replaced there during the transfer")
    }
}

extension PartFolder.Final {
    /// Returns the path for a name in the folder.
    func path(of name: String) -> String { path.isEmpty ? name : "\(path)/\(name)" }

    fileprivate func allTaken(_ name: SafeFileName) -> FileFailure {
        FileFailure("\(folder.path(of: name.text)) and all its numbered names exist")
    }
}
