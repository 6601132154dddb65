import TimelineRuntime

/// Parts above each other, one after the other, and in grids.
extension PictureLayout {
    /// The number of parts of a stack that are laid out, and of columns of a grid.
    private static let partsMax = 200
    private static let spacing = 8.0

    func overlaid(
        _ nodes: [WidgetNode], _ style: WidgetStyle, in space: PictureSize, _ look: Look
    ) -> PicturePart {
        guard nodes.count != 1 else { return part(nodes[0], in: space, look) }
        let base = style.number(.sizingPart).flatMap { Int(exactly: $0) }
        let sizing = base.flatMap {
            nodes.indices.contains($0) ? part(nodes[$0], in: space, look) : nil
        }
        let parts = nodes.enumerated().map { index, node in
            (index == base ? sizing : nil) ?? part(node, in: sizing?.size ?? space, look)
        }
        let (widths, heights) = (parts.map(\.size.width), parts.map(\.size.height))
        let size =
            sizing?.size ?? PictureSize(width: widths.max() ?? 0, height: heights.max() ?? 0)
        let placed = parts.map { (part: aligned($0, in: size, style.alignment), x: 0.0, y: 0.0) }
        var whole = joined(placed, size)
        whole.growth = sizing?.growth ?? Set(parts.flatMap(\.growth))
        return whole
    }

    /// Returns a stack whose parts share its length: the short ones get what they need, the others
    /// equal shares of the rest, and spacers what is left then.
    func stacked(
        _ nodes: [WidgetNode], isRow: Bool, _ style: WidgetStyle, in space: PictureSize,
        _ outer: Look
    ) -> PicturePart {
        var look = outer
        look.isInRow = isRow
        let nodes = nodes.filter { !$0.marks.contains(.containerBackground) }.prefix(Self.partsMax)
        let (length, gaps) = (space[isRow: isRow], Double(max(1, nodes.count - 1)))
        let gap = min(max(style.spacing ?? Self.spacing, 0), 1_000, length / gaps)
        var parts = nodes.map { part($0, in: space.with(.infinity, isRow: isRow), look) }
        guard length.isFinite else { return joined(parts, isRow: isRow, gap: gap, style.alignment) }
        let ranks = parts.map { part in
            (part.isSpacer ? 2 : part.growth.contains(isRow) ? 1 : 0, part.size[isRow: isRow])
        }
        var rest = max(0, length - gap * Double(nodes.count - 1))
        for (place, index) in ranks.indices.sorted(by: { ranks[$0] < ranks[$1] }).enumerated() {
            let (rank, wanted) = ranks[index]
            let peers = (rank < 2 ? ranks.count(where: { $0.0 < 2 }) : ranks.count) - place
            let own = max(0, rest / Double(peers))
            if rank == 2 {
                parts[index].size[isRow: isRow] = own
            } else if rank == 1 || wanted > own {
                parts[index] = part(nodes[index], in: space.with(own, isRow: isRow), look)
            }
            rest -= parts[index].size[isRow: isRow]
        }
        return joined(parts, isRow: isRow, gap: gap, style.alignment)
    }

    func joined(
        _ parts: [PicturePart], isRow: Bool, gap: Double, _ alignment: WidgetStyle.StackAlignment?
    ) -> PicturePart {
        let across = parts.map { $0.size[isRow: !isRow] }.max() ?? 0
        var size = PictureSize().with(across, isRow: !isRow)
        var places: [(part: PicturePart, x: Double, y: Double)] = []
        for (index, part) in parts.enumerated() {
            let along = size[isRow: isRow] + (index > 0 ? gap : 0)
            let shift = (across - part.size[isRow: !isRow]) * alignment.share(isRow: !isRow)
            places.append((part, isRow ? along : shift, isRow ? shift : along))
            size[isRow: isRow] = along + part.size[isRow: isRow]
        }
        var whole = joined(places, size)
        for part in parts { whole.growth.formUnion(part.isSpacer ? Set([isRow]) : part.growth) }
        return whole
    }

    /// Returns rows whose cells share columns: each as wide as its widest cell, or all of them
    /// narrower by the same share.
    func grid(
        _ rows: [WidgetNode], _ style: WidgetStyle, in space: PictureSize, _ look: Look
    ) -> PicturePart {
        var widths: [Double] = []
        for case .stack(.gridRow, let cells) in rows.prefix(Self.partsMax).map(\.content) {
            for (column, cell) in cells.prefix(Self.partsMax).enumerated() {
                if column == widths.count { widths.append(0) }
                let ideal = part(cell, in: .unlimited, look).size.width
                widths[column] = max(widths[column], ideal)
            }
        }
        let room = max(0, space.width - Self.spacing * Double(widths.count - 1))
        let share = min(1, room / max(widths.reduce(0, +), 1))
        let rows = rows.map { row in
            guard case .stack(.gridRow, let cells) = row.content else { return row }
            var row = row
            row.content = .stack(
                .horizontal,
                zip(cells, widths).map { cell, width in
                    var framed = WidgetNode(.stack(.depth, [cell]))
                    framed.style[.width] = .number(width * share)
                    return framed
                })
            return row
        }
        return stacked(rows, isRow: false, style, in: space, look)
    }
}

extension WidgetStyle.StackAlignment? {
    /// The share of the free space before a part, 0 to 1, along a row or along a column.
    func share(isRow: Bool) -> Double {
        let name = (self?.rawValue ?? "").lowercased()
        if name.contains(isRow ? "leading" : "top") { return 0 }
        // Baselines of single lines nearly agree with their bottom edges.
        return name.contains(isRow ? "trailing" : "bottom") || (!isRow && name.contains("baseline"))
            ? 1 : 0.5
    }
}
