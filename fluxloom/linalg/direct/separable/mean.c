/* Body of `mean` in plain C: the weighted mean of a plane. */
    REAL total = 0;
    for (int64_t j = 0; j < count; j++) {
        REAL sum = 0;
        for (int64_t i = 0; i < ROWS; i++) sum += row_weights[i] * u[plane * plane_step + j * ROWS + i];
        total += column_weights[j] * sum;
    }
    partial[0] = mean[0] = total;
